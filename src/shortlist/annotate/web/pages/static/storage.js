// What the browser keeps for a page, by name. Where it forbids storage, nothing is kept and nothing fails.

export const LONG = "localStorage"; // for good
export const VISIT = "sessionStorage"; // as long as the tab

export function recall(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}

export function keep(storage, name, text) {
  try {
    window[storage].setItem(name, text);
  } catch {
    // until the page is loaded again it is in memory
  }
}

// The owner's pages: tabs, each with a script of its own that is loaded when it is first opened.
import { ApiError, call } from "./api.js";
import { at, notice } from "./dom.js";
import { count } from "./figures.js";

const RENEW_MS = 3000;
const TABS = ["overview", "people", "items", "classes", "instructions", "data", "settings"];
const opened = new Map();
const starting = new Set();
let entered = true; // a tab was opened, and has not been told so

// Show what a request says that failed; true if all went well.
async function trying(act) {
  try {
    await act();
    notice(null);
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) notice("No connection. Trying again …");
    else if (error.status >= 500) notice("The server has a problem. Trying again …");
    else if (error.status === 401) notice("You are signed out. Use a link that `shortlist annotate invite PROJECT` prints.");
    else if (error.status === 403 && error.code === "reviewers_only") location.replace("/");
    else notice(error.message);
    return false;
  }
}

const current = () => TABS.find((name) => `#${name}` === location.hash.split("?")[0]) ?? TABS[0];

async function open() {
  entered = true;
  const name = current();
  for (const tab of TABS) at(`tab-${tab}`).hidden = tab !== name;
  for (const link of at("tabs").children) {
    if (link.hash === `#${name}`) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" }); // on a phone not all tabs fit
    } else link.removeAttribute("aria-current");
  }
  await refresh();
}

// A page takes no input before its script listens and has filled it: the browser itself would send the form.
async function start(name) {
  if (opened.has(name) || starting.has(name)) return;
  starting.add(name);
  at(`tab-${name}`).inert = true;
  try {
    const script = await import(`./owner-${name}.js`);
    opened.set(name, (await script.start({ trying, refresh })) ?? (() => {}));
  } finally {
    starting.delete(name);
  }
}

async function refresh() {
  await trying(async () => {
    await start(current());
    const status = await call("GET", "/status");
    at("title").textContent = status.title;
    document.title = `${status.title} · Admin · Shortlist`;
    at("progress").textContent = status.items ? `${count(status.items_done)} of ${count(status.items)} items done` : "";
    await show(current(), status);
  });
}

// What was done on other tabs is to be seen on this one: whoever comes back reads nothing old.
async function show(name, status) {
  const tab = opened.get(name);
  if (!tab) return;
  const anew = entered;
  entered = false;
  try {
    await tab(status, anew);
    at(`tab-${name}`).inert = false;
  } catch (error) {
    entered ||= anew;
    throw error;
  }
}

at("sign-out").addEventListener("click", async () => {
  await call("DELETE", "/session?role=admin").catch(() => {});
  location.replace("/join");
});
addEventListener("hashchange", open);
open();
call("GET", "/session?role=admin").then((who) => (at("me").textContent = who.name === who.role ? who.name : `${who.name}, ${who.role}`)).catch(() => {});
setInterval(() => document.visibilityState === "visible" && refresh(), RENEW_MS);

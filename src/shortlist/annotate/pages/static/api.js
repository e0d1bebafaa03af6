// The API as the pages use it. Every refusal becomes an ApiError with the server's code; no network is a TypeError.

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export async function call(method, path, body) {
  const options = { method, headers: { "X-Shortlist": "1" }, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch(`/api/v1${path}`, options);
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, answer.code ?? "http", answer.message ?? response.statusText);
  return answer;
}

// Elements are made from text only: nothing that was imported is ever parsed as HTML.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map(String));
  return made;
}

export function notice(text) {
  const place = document.getElementById("notice");
  place.textContent = text ?? "";
  place.hidden = !text;
}

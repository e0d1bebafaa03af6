// The owner's pages: tabs, each with a script of its own that is loaded when it is first opened.
import { ApiError, call } from "./api.js";
import { at, notice } from "./dom.js";
import { count } from "./figures.js";

const RENEW_MS = 3000;
const TABS = ["overview", "people", "items", "classes", "instructions", "data", "settings"];
const OWNERS_TABS = ["data", "settings"];
const opened = new Map();
const starting = new Set();
let owner = null; // whether an owner is signed in, or a reviewer; null: not known yet
let entered = true; // a tab was opened, and has not been told so

// Show why a request failed.
async function trying(act) {
  try {
    await act();
    notice(null);
    signedOut(false);
  } catch (error) {
    if (!(error instanceof ApiError)) notice("No connection. Trying again …");
    else if (error.status >= 500) notice("The server has a problem. Trying again …");
    else if (error.status === 401) signedOut(true);
    else notice(error.message);
  }
}

function signedOut(out) {
  document.body.classList.toggle("out", out);
  at("signed-out").hidden = !out;
  if (out) notice(null);
}

const current = () => TABS.find((name) => `#${name}` === location.hash.split("?")[0] && (owner || !OWNERS_TABS.includes(name))) ?? TABS[0];

// What has the class `owners` is for owners only (admin.css); the server would refuse it to a reviewer.
async function identify() {
  const who = await call("GET", "/session?role=admin");
  if (who.role === "annotator") return location.replace("/");
  owner = who.role === "owner";
  document.body.classList.toggle("owner", owner);
  at("me").textContent = who.name === who.role ? who.name : `${who.name}, ${who.role}`;
}

async function open() {
  if (owner === null) await trying(identify);
  if (owner === null) return;
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
    opened.set(name, (await script.start({ trying, refresh, owner })) ?? (() => {}));
  } finally {
    starting.delete(name);
  }
}

async function refresh() {
  if (owner === null) return open(); // there was no connection
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
    if (anew) at(`tab-${name}`).inert = false; // not by a renewal that overtakes the first look
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
setInterval(() => document.visibilityState === "visible" && refresh(), RENEW_MS);

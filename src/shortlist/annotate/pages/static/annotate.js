// The annotator's page: one item, its shortlist as numbered buttons, one key = answer and next.
import { ApiError, call, element, notice } from "./api.js";
import * as outbox from "./outbox.js";
import { Stopwatch } from "./stopwatch.js";

const HOLD = 3; // the shown question and two prefetched ones
const RENEW_MS = 60_000;
const KEYS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", ..."qwertyuiop", ..."adfghjkl", ..."xcvbnm"];
const at = (id) => document.getElementById(id);

let held = []; // open questions, the shown one first
let shown = null;
let answered = []; // for undo, the latest last
let sending = false;
let ended = false;
const times = []; // when answers were given, for the rate
const stopwatch = new Stopwatch();

// -- showing ---------------------------------------------------------------------------------------------------------

function show() {
  const question = held[0] ?? null;
  if (question && shown && question.id === shown.id && question.attempt === shown.attempt) return prefetch();
  shown = question;
  at("answers").hidden = !question;
  if (!question) {
    stopwatch.stop();
    at("item").replaceChildren(element("p", {}, ended ? "Nothing left to answer for now. Thank you!" : "Loading …"));
    return;
  }
  const item = render(question.item);
  at("item").replaceChildren(item);
  at("choices").replaceChildren(...question.shortlist.map((choice, place) => button(choice, place)));
  stopwatch.start(item);
  prefetch();
}

function render(item) {
  if (item.kind === "text") return element("p", { class: "text" }, item.text);
  if (item.kind === "audio") return element("audio", { src: item.media, controls: "", autoplay: "" });
  return element("img", { src: item.media, alt: "The item to label" });
}

function button(choice, place) {
  const key = KEYS[place];
  const made = element("button", { type: "button", "data-class": choice.class });
  if (key) {
    made.setAttribute("aria-keyshortcuts", key);
    made.append(element("kbd", {}, key.toUpperCase()), " ");
  }
  made.append(choice.name);
  made.addEventListener("click", () => answer(choice.class));
  return made;
}

function prefetch() {
  for (const { item } of held.slice(1)) if (item.kind === "image") new Image().src = item.media;
}

function progress({ done, total }) {
  const minute = performance.now() - 60_000;
  while (times.length && times[0] < minute) times.shift();
  at("progress").textContent = `${done} of ${total} answered · ${times.length} in the last minute`;
}

// -- deciding --------------------------------------------------------------------------------------------------------

async function decide(path, body) {
  if (!shown) return;
  const question = shown;
  const seconds = stopwatch.stop();
  held = held.filter((other) => other.id !== question.id);
  answered.push(question);
  times.push(performance.now());
  shown = null;
  show();
  await send({ path, body: { question: question.id, attempt: question.attempt, seconds, ...body } });
}

const answer = (choice) => decide("/answers", { answer: choice });
const skip = () => decide("/skips", {});

async function undo() {
  const question = answered.pop();
  if (!question) return send({ path: "/undos", body: {} });
  held.unshift({ ...question, attempt: question.attempt + 1 });
  show();
  await send({ path: "/undos", body: { question: question.id, attempt: question.attempt } });
}

async function send(entry) {
  at("saved").textContent = "Saving …";
  await outbox.put(entry);
  await flush();
}

// -- sending ---------------------------------------------------------------------------------------------------------

async function flush() {
  if (sending) return;
  sending = true;
  try {
    for (let next = await outbox.first(); next; next = await outbox.first()) {
      const { path, body } = next.entry;
      let reply = null;
      try {
        reply = await call("POST", path, { ...body, hold: HOLD });
      } catch (error) {
        if (!(error instanceof ApiError) || error.status >= 500 || error.status === 429) throw error;
        if (error.status === 401) return signedOut();
        refused(error);
      }
      await outbox.remove(next.key);
      if (reply) await take(reply);
      else await refresh();
    }
    at("saved").textContent = "Saved";
    notice(null);
  } catch {
    at("saved").textContent = "Not saved yet";
    notice("No connection. Your answers are kept in this browser and will be sent.");
    setTimeout(flush, 2000);
  } finally {
    sending = false;
  }
}

function refused(error) {
  at("saved").textContent = error.message;
  answered = [];
}

// The server's open questions, without those that are decided here but not yet acknowledged there.
async function take(reply) {
  const waiting = await outbox.all();
  const decided = new Set(waiting.filter((entry) => entry.path !== "/undos").map((entry) => entry.body.question));
  const undone = waiting.some((entry) => entry.path === "/undos");
  if (!undone) held = reply.questions.filter((question) => !decided.has(question.id));
  ended = !held.length && !waiting.length;
  progress(reply.progress);
  show();
  if (ended) setTimeout(refresh, 10_000);
}

async function refresh() {
  try {
    await take(await call("POST", "/next", { hold: HOLD }));
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return signedOut();
    if (error instanceof ApiError && error.status === 403) return location.replace("/admin");
    notice(error instanceof ApiError ? error.message : "No connection. Trying again …");
    setTimeout(refresh, 2000);
  }
}

function signedOut() {
  notice("You are signed out. Open your invite link again; answers that were not sent yet are kept in this browser.");
}

// -- starting --------------------------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key.toLowerCase();
  const place = KEYS.indexOf(key);
  if (key === "0") answer(null);
  else if (key === "z") undo();
  else if (key === "s") skip();
  else if (place >= 0 && shown && place < shown.shortlist.length) answer(shown.shortlist[place].class);
  else return;
  event.preventDefault();
});
at("none").addEventListener("click", () => answer(null));
at("undo").addEventListener("click", undo);
at("skip").addEventListener("click", skip);
addEventListener("online", flush);
setInterval(() => held.length && !sending && document.visibilityState === "visible" && refresh(), RENEW_MS);

try {
  const who = await call("GET", "/session");
  if (who.role === "admin") location.replace("/admin");
  at("title").textContent = who.title;
  await flush();
  await refresh();
} catch (error) {
  if (error instanceof ApiError && error.status === 401) signedOut();
  else refresh();
}

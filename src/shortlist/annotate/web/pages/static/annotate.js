// The annotator's page: one item, its shortlist as numbered buttons, one key = answer and next.
//
// Everything is sent by one loop, one request at a time: first the decisions, in order, then the request for questions.
// So no reply overtakes another, and what is shown is the last reply with the waiting decisions applied to it
// (questions.js).
import { ApiError, call } from "./api.js";
import { at, notice } from "./dom.js";
import { History } from "./history.js";
import { introduce, reading, showHelp } from "./instructions.js";
import { changeSpeed, scrollText, toggleSound } from "./item.js";
import { keyOf, pressed } from "./keys.js";
import { chooseReason, hideReasons, offerReasons, watchReasons, writeNote, writing } from "./notes.js";
import { Outbox } from "./outbox.js";
import { Pace } from "./pace.js";
import { DECISIONS, openQuestions, sameShowing } from "./questions.js";
import { keysAnswer, loadShortcuts, saveShortcuts } from "./shortcuts.js";
import { Stopwatch } from "./stopwatch.js";
import { Typing } from "./typing.js";
import { showBroken, showDropped, showProgress, showQuestion, showSignedOut, showState, showTaken, stage, toast, toTop, watchMore } from "./view.js";
import { reason, say } from "./words.js";
import { watchZoom, zoomKey } from "./zoom.js";

const HOLD = 3; // the shown question and two prefetched ones
const RENEW_MS = 60_000; // leases last five minutes
const ASK_AGAIN_MS = 10_000; // when there was nothing left
const TRY_MEDIA_MS = 3000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

const outbox = new Outbox();
const history = new History();
const stopwatch = new Stopwatch();
const pace = new Pace();
const typing = new Typing((choice, name) => answer(choice, name, true));
let who = null;
let server = null; // the questions of the last reply
let progress = { done: 0, total: 0 };
let shown = null;
let mine = 0;
let wanted = true; // ask for questions when nothing waits
let running = false;
let failures = 0;
let timer = null;
let signedOut = false;
let begun = false; // until then nothing is asked for: nobody holds a question while reading the instructions

// -- showing ---------------------------------------------------------------------------------------------------------

function render() {
  const before = shown;
  const held = openQuestions(server ?? [], outbox.entries);
  stage(held);
  const question = held[0] ?? null;
  if (question === null || !question.item) {
    shown = null;
    delete at("item").dataset.ready;
    stopwatch.reset();
    typing.close();
    if (server !== null && !outbox.entries.length && question === null) end();
    else if (failures) showState("offline", { sign: "⇅", tone: "warn", actions: [[say("try_now"), run]] });
    else showState("loading");
  } else if (!sameShowing(question, shown)) {
    shown = question;
    present(question);
  }
  showProgress(progress, mine, pace.perMinute());
  if (shown !== before) requestAnimationFrame(toTop);
}

// Somebody who skipped the last item, or has to wait for others, must not read that all is done.
function end() {
  const over = progress.done >= progress.total;
  showState(over ? "over" : "waiting", { sign: over ? "✓" : "…", tone: over ? "good" : "", actions: [[say("look_again"), renew]] });
}

async function present(question) {
  typing.close();
  delete at("item").dataset.ready;
  while (shown === question) {
    const item = showQuestion(question, answer);
    if (!question.shortlist.length) typing.open(question); // the only way, so the first letter belongs to it
    const seen = await stopwatch.start(item);
    if (shown !== question) return;
    if (seen) {
      at("item").dataset.ready = `${question.id}.${question.attempt}`;
      return;
    }
    showBroken(question); // a picture or sound that did not come may come yet
    await new Promise((resolve) => setTimeout(resolve, TRY_MEDIA_MS));
  }
}

function saved() {
  const count = outbox.entries.length;
  const words = say(count === 0 ? "saved" : failures ? "unsaved" : "saving", { count });
  at("saved").textContent = server === null && count === 0 ? "" : words;
  at("saved").dataset.state = count === 0 ? "saved" : failures ? "waiting" : "saving";
}

// -- deciding --------------------------------------------------------------------------------------------------------

function decide(path, body) {
  if (shown === null) return;
  const question = shown;
  const seconds = stopwatch.stop();
  history.push(question, path === "/answers", body.answer);
  send({ path, body: { question: question.id, attempt: question.attempt, seconds, ...body }, question });
}

function answer(choice, name, typed = false) {
  if (shown === null || (choice === null && !shown.shortlist.length)) return; // None of what?
  if (!stopwatch.seen) return showDropped(); // a key that bounced, a double click, or a picture that is still loading
  hideReasons(); // they lie over the item, and whoever answers has gone on
  mine += 1;
  showTaken(choice === null ? say("took_none") : name);
  pace.add();
  decide("/answers", typed ? { answer: choice, typed } : { answer: choice });
}

function skip() {
  if (shown === null) return;
  showTaken(say("took_skip"));
  const question = shown;
  decide("/skips", {});
  offerReasons(question);
}

async function note() {
  if (shown === null || writing()) return;
  const about = shown;
  const written = writeNote();
  stopwatch.look();
  const said = await written;
  stopwatch.look();
  if (said === null) return;
  send({ path: "/notes", body: { question: about.id, ...said } });
  toast(say("noted"));
}

function undo() {
  if (signedOut) return;
  hideReasons();
  const question = history.pop();
  if (!question) return undoLatest();
  if (question.counted) uncount();
  showTaken(say("took_undo"));
  send({ path: "/undos", body: { question: question.id, attempt: question.attempt }, question });
}

function uncount() {
  mine = Math.max(0, mine - 1);
  pace.remove();
}

// Answered in another browser or on another day. Without a name it must not be sent twice, so it bypasses the outbox.
async function undoLatest() {
  if (outbox.entries.length || running) return;
  running = true;
  try {
    take(await call("POST", "/undos", { hold: HOLD }));
    notice(null);
  } catch (error) {
    if (error.status === 401) leave();
    else if (error.status < 500) notice(say("not_accepted", { why: reason(error) }));
    else notice(`${say(error.status ? "trouble" : "no_connection")} ${say("not_taken_back")}`);
  } finally {
    running = false;
    saved();
  }
  run(); // what was decided meanwhile
}

async function help() {
  if (who === null) return;
  const read = showHelp(who.instructions, shown, history);
  stopwatch.look();
  const changed = (now) => (who = now); // since this page was loaded
  call("GET", "/session").then(changed, () => {}).then(() => reading() && showHelp(who.instructions, shown, history));
  await read;
  stopwatch.look();
}

function send(entry) {
  if (!failures) notice(null); // the message about the last one has been read
  outbox.add(entry);
  saved();
  render();
  run();
}

// -- the one loop ----------------------------------------------------------------------------------------------------

async function run() {
  if (running || signedOut || !begun) return;
  running = true;
  clearTimeout(timer);
  try {
    while (outbox.entries.length || wanted) {
      if (outbox.entries.length) await submit(outbox.entries[0]);
      else await ask();
    }
    if (server.length === 0) later(ASK_AGAIN_MS);
  } catch (error) {
    failed(error);
  } finally {
    running = false;
    saved();
  }
}

// The server replied, whatever it said.
function connected() {
  if (failures) notice(null);
  failures = 0;
}

async function ask() {
  wanted = false;
  try {
    const reply = await call("POST", "/next", { hold: HOLD });
    connected();
    take(reply);
  } catch (error) {
    wanted = true;
    throw error;
  }
}

async function submit(entry) {
  await entry.stored; // to this disk first, then over the network
  let reply = null;
  try {
    const decided = DECISIONS.includes(entry.path);
    reply = await call("POST", entry.path, decided ? { ...entry.body, hold: HOLD } : entry.body);
    if (!decided) reply = null;
    connected();
  } catch (error) {
    // Only the server's own "no" ends an entry; anything else is tried again.
    if (!(error instanceof ApiError) || ![400, 404, 409, 413, 422].includes(error.status)) throw error;
    connected();
    history.forget(entry.body.question);
    if (entry.path === "/answers") uncount();
    notice(say("not_accepted", { why: reason(error) }));
    wanted = true;
  }
  await outbox.remove(entry);
  if (reply) take(reply);
}

function take(reply) {
  server = reply.questions;
  progress = reply.progress;
  render();
}

function failed(error) {
  const status = error instanceof ApiError ? error.status : 0;
  if (status === 401) {
    leave();
    return;
  }
  if (status === 403) return location.replace("/admin");
  const trouble = `${say(status >= 500 ? "trouble" : "no_connection")} ${say(outbox.kept ? "kept" : "unkept")}`;
  notice(status === 429 ? say("too_fast") : trouble);
  later(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]);
  failures += 1;
  if (shown === null) render();
}

function leave() {
  signedOut = true;
  shown = null;
  notice(null);
  showSignedOut();
}

function later(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    wanted = true;
    run();
  }, milliseconds);
}

function renew() {
  if (document.visibilityState !== "visible") return;
  wanted = true;
  run();
}

// -- starting --------------------------------------------------------------------------------------------------------

// Keys that look at the item: they belong to a control that has the focus, otherwise to the item.
function look(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, audio, [popover]")) return false;
  if (zoomKey(event)) return true;
  const { key } = event;
  if (key === "<" || key === ">") return changeSpeed(at("item"), key === ">" ? 1 : -1);
  if (key === " " && event.target.closest("button")) return false;
  return (key === " " && toggleSound(at("item"))) || (!event.target.closest(".text") && scrollText(at("item"), event));
}

document.addEventListener("keydown", (event) => {
  if (!keysAnswer() || reading() || writing() || event.target.closest("#typing")) return;
  if (look(event)) return event.preventDefault();
  const key = pressed(event);
  if (key === null || event.target.closest("select")) return;
  const place = shown?.shortlist.findIndex((_, index) => keyOf(index) === key) ?? -1;
  const choice = shown?.shortlist[place];
  if (key === "0") answer(null);
  else if (key === "Z") undo();
  else if (key === "S") skip();
  else if (key === "⇧S") chooseReason();
  else if (key === "!") note();
  else if (key === "/" && who?.typing) typing.open(shown);
  else if (key === "?") help();
  else if (choice) answer(choice.class, choice.name);
  else return;
  event.preventDefault();
});
at("none").addEventListener("click", () => answer(null));
at("type").addEventListener("click", () => typing.open(shown));
at("undo").addEventListener("click", undo);
at("skip").addEventListener("click", skip);
at("type-close").addEventListener("click", () => typing.close());
at("note").addEventListener("click", note);
at("help").addEventListener("click", help);
at("language").addEventListener("change", ({ target }) => {
  document.cookie = `shortlist_language=${target.value}; path=/; max-age=31536000; samesite=strict`;
  location.reload();
});
at("keys").addEventListener("change", saveShortcuts);
at("sign-out").addEventListener("click", async () => {
  if (outbox.entries.length) return notice(say("not_yet"));
  await call("DELETE", "/session").catch(() => {});
  leave();
});
addEventListener("online", run);
document.addEventListener("visibilitychange", renew);
addEventListener("beforeunload", (event) => {
  // an entry takes a moment to reach the disk: too early to close
  const unstored = outbox.entries.some((entry) => entry.key === undefined);
  if (outbox.entries.length && (!outbox.kept || unstored)) event.preventDefault();
});
setInterval(renew, RENEW_MS);

async function start() {
  try {
    who = await call("GET", "/session");
    if (who.role !== "annotator") return location.replace("/admin");
    at("title").textContent = who.title;
    document.title = `${who.title} · Shortlist`;
    at("who").textContent = who.name;
    at("type").hidden = !who.typing;
    history.load(who.outbox);
    await outbox.load(who.outbox);
    failures = 0;
    notice(null);
    await introduce(who);
    begun = true;
    run();
  } catch (error) {
    failed(error);
    clearTimeout(timer); // without a name there is nothing to send yet: start again
    if (!signedOut) timer = setTimeout(start, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]);
  }
}
loadShortcuts();
watchMore();
watchZoom();
watchReasons((entry) => {
  send(entry);
  toast(say("reasoned"));
});
render();
start();

// What was answered, the latest last: what Z takes back, even after a reload. Only ids are kept; the content of a
// question comes from memory or from the server.
import { keep, recall, VISIT } from "./storage.js";

const MOST = 100;

export class History {
  #memory = new Map();
  #list = [];

  load(owner) {
    this.name = `shortlist-history-${owner}`;
    this.#list = JSON.parse(recall(VISIT, this.name) ?? "[]");
  }

  // `counted`: an answer, not a skip; `taken`: its class.
  push(question, counted, taken) {
    this.#memory.set(question.id, { ...question, taken });
    this.#list = [...this.#list, { id: question.id, attempt: question.attempt, counted }].slice(-MOST);
    if (this.#memory.size > MOST) this.#memory.delete(this.#memory.keys().next().value);
    this.#save();
  }

  pop() {
    const last = this.#list.pop();
    this.#save();
    return last && { ...this.#memory.get(last.id), ...last };
  }

  // The latest items that were taken for a class, since this page was loaded.
  taken(choice, most = 3) {
    const mine = this.#list.map(({ id }) => this.#memory.get(id)).filter((one) => one?.item && one.taken === choice);
    return mine.slice(-most).map(({ item }) => item);
  }

  // The server refused something: what we know about these questions may be wrong.
  forget(id) {
    this.#list = this.#list.filter((entry) => entry.id !== id);
    this.#save();
  }

  #save() {
    keep(VISIT, this.name, JSON.stringify(this.#list));
  }
}

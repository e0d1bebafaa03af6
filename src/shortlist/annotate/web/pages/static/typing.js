// A class that is not on the list: type a few letters, choose among the matches of all classes. The server finds them,
// so that the likelier ones come first; the answer itself waits in the outbox as any other does.
import { call } from "./api.js";
import { at, element } from "./dom.js";
import { say } from "./words.js";

const PAGE = 50; // matches at first; more as somebody goes on
const MOST = 1000;
const MARKS = { shown: "on_list", refused: "refused" };

export class Typing {
  #choose;
  #question = null;
  #found = [];
  #limit = PAGE;
  #active = 0;
  #run = 0; // of the latest request: an earlier reply that comes later is dropped
  #waiting = false;
  #entered = false; // Enter was pressed before the matches for these letters came

  constructor(choose) {
    this.#choose = choose;
    at("typed").addEventListener("input", () => this.#search());
    at("typed").addEventListener("keydown", (event) => this.#press(event));
    at("matches").addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = at("matches");
      if (scrollTop + 2 * clientHeight > scrollHeight) this.#more();
    });
  }

  open(question) {
    if (!question?.item) return;
    this.#question = question;
    at("typed").value = "";
    at("typing").hidden = false;
    at("answers").classList.add("searching");
    at("type-close").hidden = !question.shortlist.length;
    at("type").setAttribute("aria-expanded", "true");
    at("typed").focus();
    this.#search();
  }

  close() {
    if (this.#question === null) return;
    const hadFocus = at("typing").contains(document.activeElement);
    this.#question = null;
    this.#show([]);
    at("typing").hidden = true;
    at("answers").classList.remove("searching");
    at("type").setAttribute("aria-expanded", "false");
    if (hadFocus) at("item").focus({ preventScroll: true });
  }

  async #search() {
    const run = ++this.#run;
    this.#waiting = true;
    this.#entered = false;
    this.#limit = PAGE;
    try {
      const classes = await this.#find();
      if (run !== this.#run || this.#question === null) return;
      this.#show(classes, classes.length ? "" : say("no_match"));
    } catch {
      if (run !== this.#run || this.#question === null) return;
      this.#show([], say("no_search"));
    }
    this.#waiting = false;
    if (this.#entered) this.#take(0);
  }

  async #find() {
    const query = new URLSearchParams({ question: this.#question.id, q: at("typed").value, limit: this.#limit });
    return (await call("GET", `/classes/search?${query}`)).classes;
  }

  // The end of the list is near: what comes after it.
  async #more() {
    if (this.#waiting || this.#found.length < this.#limit || this.#limit === MOST) return;
    this.#limit = Math.min(4 * this.#limit, MOST);
    const [run, known] = [this.#run, this.#found.length];
    const classes = await this.#find().catch(() => []);
    if (run !== this.#run || this.#question === null || classes.length <= known) return;
    this.#found = [...this.#found, ...classes.slice(known)];
    at("matches").append(...classes.slice(known).map((found, place) => this.#option(found, known + place)));
  }

  #press(event) {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.#found.length) this.#mark((this.#active + step + this.#found.length) % this.#found.length);
    else if (event.key === "Enter" && this.#waiting) this.#entered = true;
    else if (event.key === "Enter") this.#take(this.#active);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }

  #take(place) {
    const found = this.#found[place];
    if (!found) return;
    this.close();
    this.#choose(found.class, found.name);
  }

  #show(classes, words = "") {
    this.#found = classes;
    at("matches").replaceChildren(...classes.map((found, place) => this.#option(found, place)));
    at("matches").hidden = !classes.length;
    at("typed").setAttribute("aria-expanded", String(classes.length > 0));
    at("unmatched").textContent = words;
    this.#mark(0);
  }

  #option(found, place) {
    const made = element("li", { role: "option", id: `match-${place}` }, element("span", { dir: "auto" }, ...this.#marked(found.name)));
    const marks = Object.keys(MARKS).filter((mark) => found[mark]);
    if (marks.length) made.append(" ", element("span", { class: `badge ${marks[0] === "refused" ? "warn" : "accent"}` }, say(MARKS[marks[0]])));
    if (found.description) made.append(" ", element("small", { dir: "auto" }, found.description));
    made.addEventListener("pointerdown", (event) => event.preventDefault()); // the box keeps the focus
    made.addEventListener("click", () => this.#take(place));
    return made;
  }

  // The letters that were typed, where the name has them.
  #marked(name) {
    const typed = at("typed").value.trim().toLowerCase();
    const start = typed ? name.toLowerCase().indexOf(typed) : -1;
    if (start < 0) return [name];
    const end = start + typed.length;
    return [name.slice(0, start), element("mark", {}, name.slice(start, end)), name.slice(end)];
  }

  #mark(place) {
    this.#active = place;
    [...at("matches").children].forEach((one, index) => one.setAttribute("aria-selected", String(index === place)));
    const active = at(`match-${place}`);
    if (active) at("typed").setAttribute("aria-activedescendant", active.id);
    else at("typed").removeAttribute("aria-activedescendant");
    active?.scrollIntoView({ block: "nearest" });
  }
}

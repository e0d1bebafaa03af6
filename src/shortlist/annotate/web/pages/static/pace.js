// Answers per minute, over the last minute of work.

const MINUTE = 60_000;
const PAUSE = 30_000; // a longer gap is a pause, not slowness

export class Pace {
  #times = [];

  add(now = performance.now()) {
    const last = this.#times.at(-1);
    if (last !== undefined && now - last > PAUSE) this.#times = [];
    this.#times.push(now);
    this.#times = this.#times.filter((time) => now - time <= MINUTE);
  }

  // The latest was taken back: it was no answer.
  remove() {
    this.#times.pop();
  }

  // null until there is something to say
  perMinute() {
    if (this.#times.length < 3) return null;
    return Math.round(((this.#times.length - 1) * MINUTE) / (this.#times.at(-1) - this.#times[0]));
  }
}

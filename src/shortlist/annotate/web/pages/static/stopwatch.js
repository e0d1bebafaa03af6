// Seconds from the first paint of an item to the decision, not counting the time while it is out of sight.

const DAY_MS = 86_400_000; // the server takes no more: the page stood open
const SEEN_MS = 200; // nobody decides in less: it was the second half of a double click, or a key that bounced
const SOUND_MS = 5000; // how long a sound is waited for: some phones load none before it is played

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
const broken = (item) => item instanceof HTMLMediaElement && item.error !== null;
const away = () => document.visibilityState === "hidden" || document.querySelector("dialog[open]") !== null;
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// The beginning of a sound, or its failure.
function heard(sound) {
  if (sound.error || sound.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA) return null;
  const told = ["loadeddata", "error"].map((kind) => new Promise((resolve) => sound.addEventListener(kind, resolve, { once: true })));
  return Promise.race([...told, pause(SOUND_MS)]);
}

export class Stopwatch {
  #run = 0;
  #painted = false;
  #seen = false;
  #since = null;
  #total = 0;

  constructor() {
    document.addEventListener("visibilitychange", () => this.look());
  }

  // Stops while another tab or a dialog is in front of the item; to be called when one comes or goes.
  look() {
    if (away()) this.#pause();
    else if (this.#painted) this.#since ??= performance.now();
  }

  // Whether the item has been on the screen long enough: what was not seen cannot be answered.
  get seen() {
    return this.#seen;
  }

  // True once seen; false where another item came in between or this one cannot be shown.
  async start(item) {
    const run = this.reset();
    if (item instanceof HTMLImageElement) {
      try {
        await item.decode();
      } catch {
        return false; // no picture, no answer; the page says so
      }
    } else if (item instanceof HTMLMediaElement) await heard(item);
    // a callback of the first frame runs before its paint, one of the second after it
    await frame();
    await frame();
    if (run !== this.#run) return false;
    this.#painted = true;
    this.look();
    await pause(SEEN_MS);
    if (run !== this.#run || broken(item)) return false;
    this.#seen = true;
    return true;
  }

  stop() {
    this.#pause();
    const seconds = Math.round(Math.min(this.#total, DAY_MS)) / 1000;
    this.reset();
    return seconds;
  }

  reset() {
    this.#painted = false;
    this.#seen = false;
    this.#since = null;
    this.#total = 0;
    return ++this.#run;
  }

  #pause() {
    if (this.#since !== null) this.#total += performance.now() - this.#since;
    this.#since = null;
  }
}

// Seconds from the first paint of an item to the decision, not counting the time while the page is hidden.

export class Stopwatch {
  #run = 0;
  #since = null;
  #total = 0;

  constructor() {
    document.addEventListener("visibilitychange", () => {
      if (!this.#run) return;
      if (document.visibilityState === "hidden") this.#pause();
      else this.#since ??= performance.now();
    });
  }

  start(item) {
    const run = (this.#run = this.#run + 1 || 1);
    this.#since = null;
    this.#total = 0;
    const painted = () =>
      requestAnimationFrame(() =>
        requestAnimationFrame(() => {
          if (run === this.#run && document.visibilityState === "visible") this.#since ??= performance.now();
        }),
      );
    if (item instanceof HTMLImageElement && !item.complete) item.addEventListener("load", painted, { once: true });
    else painted();
  }

  stop() {
    this.#pause();
    this.#run += 1;
    return Math.round(this.#total) / 1000;
  }

  #pause() {
    if (this.#since !== null) this.#total += performance.now() - this.#since;
    this.#since = null;
  }
}

"""Somebody at a browser, who uses the keyboard alone."""

import os
from pathlib import Path
from typing import Any

PATIENCE = 60_000  # milliseconds: a busy machine takes its time, and nobody waits for as long where all is well
NETWORK = ("net::ERR_", "Failed to load resource", "the server responded with a status")


class Person:
    """One browser context and the page that is open in it."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.complaints: list[str] = []
        self.page: Any = None
        self.open_page()

    def open_page(self) -> None:
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _listen(self, message: Any) -> None:
        # a cut network is what some tests are about; anything else (a breach of the CSP, say) is a fault
        if message.type in ("error", "warning") and not any(word in message.text for word in NETWORK):
            self.complaints.append(message.text)

    def go(self, url: str) -> "Person":
        self.page.goto(url)
        return self

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def tab_to(self, selector: str) -> None:
        """Press Tab until the focus is there."""
        wanted = self.page.locator(selector)
        for _ in range(60):
            self.press("Tab")
            if wanted.evaluate("element => element === document.activeElement"):
                return
        raise AssertionError(f"Tab never reaches {selector}")

    def settle(self) -> None:
        """Wait until the page has handled what was done to it and painted the result."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def elapse(self, milliseconds: float) -> None:
        """Wait until so much time has passed on the page's own clock: where time is what a test is about."""
        end = self.page.evaluate("performance.now()") + milliseconds
        self.page.wait_for_function("end => performance.now() >= end", arg=end)

    def hold(self) -> None:
        """From now on no item counts as seen until `release`, however slow the machine is."""
        self.page.evaluate(
            """() => {
              const [wait, held] = [window.setTimeout, []];
              window.setTimeout = (act, after, ...more) => after === 200 ? held.push(act) : wait(act, after, ...more);
              window.release = () => {
                window.setTimeout = wait;
                held.forEach((act) => act());
              };
            }"""
        )

    def release(self) -> None:
        self.page.evaluate("release()")

    def hurry(self, after: int) -> "Person":
        """On the pages opened from now on, what waits for so many milliseconds waits for a moment."""
        self.page.add_init_script(
            f"""for (const name of ["setTimeout", "setInterval"]) {{
              const wait = window[name];
              window[name] = (act, after, ...more) => wait(act, after === {after} ? 100 : after, ...more);
            }}"""
        )
        return self

    def renewed(self, path: str) -> None:
        """Wait until the page has asked for `path` once more, by itself, and shown the reply."""
        with self.page.expect_response(f"**{path}") as reply:
            pass
        reply.value.finished()
        self.settle()

    def tab(self, name: str) -> None:
        """Open one of the owner's pages by its tab, and wait until its script listens."""
        self.page.locator(f"#tabs a[href$='#{name}']").click()
        self.page.wait_for_selector(f"#tab-{name}:not([hidden]):not([inert])")

    # -- the annotator's page ----------------------------------------------------------------------------------------

    def ready(self, after: str | None = None) -> str:
        """Wait for a question other than `after` to be painted; returns which showing it is."""
        self.page.wait_for_function(
            "after => { const now = document.getElementById('item')?.dataset.ready; return now && now !== after; }",
            arg=after,
        )
        return str(self.page.locator("#item").get_attribute("data-ready"))

    def choices(self) -> list[str]:
        return self.page.locator("#choices button span").all_inner_texts()

    def key_for(self, name: str) -> str:
        """The key that is written on the button of a class."""
        return str(self.page.locator("#choices button").nth(self.choices().index(name)).locator("kbd").inner_text())

    def decide(self, key: str) -> str:
        """Press a key and wait for the next question."""
        before = self.ready()
        self.press(key)
        return self.ready(before)

    def open_menu(self) -> None:
        """The menu with the switch of the keys, by keyboard."""
        self.tab_to("#more")
        self.press("Enter")
        self.page.wait_for_selector("#menu:popover-open")

    def wait_saved(self) -> None:
        self.wait_saved_as("Saved")

    def wait_saved_as(self, words: str) -> None:
        self.page.wait_for_selector("#saved[data-state=saved]")
        assert self.page.locator("#saved").inner_text() == words

    def picture(self, name: str, **options: Any) -> None:
        """A screenshot for the docs, where SHORTLIST_SCREENSHOTS says so."""
        if folder := os.environ.get("SHORTLIST_SCREENSHOTS"):
            gone = "() => !window.taken || getComputedStyle(taken).opacity === '0'"
            self.page.wait_for_function(gone)  # what was decided before
            self.page.screenshot(path=Path(folder) / f"annotate-{name}.png", **options)

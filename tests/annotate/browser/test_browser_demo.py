"""The picture of the demo in the docs: a real crowd, a real curve. Only where pictures are wanted; it takes a while."""

import os
import signal
import subprocess

import pytest

from ..running import COMMAND

pytestmark = pytest.mark.browser


@pytest.mark.skipif("SHORTLIST_SCREENSHOTS" not in os.environ, reason="for SHORTLIST_SCREENSHOTS=docs/images")
def test_a_picture_of_the_demo(person):
    command = [*COMMAND, "demo", "--robots", "20", "--think", "0.8", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        me = person(viewport={"width": 1000, "height": 900}).go(process.stdout.readline().split()[-1])
        me.page.wait_for_function(
            "() => (document.querySelector('#curve polyline')?.getAttribute('points') ?? '').split(' ').length >= 9",
            timeout=120_000,
        )
        me.picture("demo")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()

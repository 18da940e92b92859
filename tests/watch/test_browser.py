"""The page in a browser: it loads, follows a run, and everybody can use it.

Needs Playwright and the system's Chromium. `make test-browser` installs it and runs all of these;
`make test` runs the first, where there is a browser.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed")
pytest.importorskip("uvicorn")

from playwright.sync_api import sync_playwright

from losse.runs.store import Store
from tests.watch import folders

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = Path(sys.prefix) / "axe.min.js"
CHART = "() => document.querySelector('#return div[role=img]').chart"
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium: make test-browser installs it"
)
thorough = pytest.mark.skipif(
    "LOSSE_BROWSER" not in os.environ, reason="make test-browser runs it, in a minute"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return folders.everything(tmp_path_factory.mktemp("runs"))


def serving(folder):
    command = [sys.executable, "-m", "losse", "watch", str(folder), "--port", "0"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def address(root):
    with serving(root) as process:
        yield re.search(r"http://\S+/", process.stdout.readline()).group()
        process.kill()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def page(browser):
    """A page that fails the test if it says an error or asks another host."""
    made = browser.new_page(viewport={"width": 1280, "height": 900})
    faults = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    made.on("request", lambda asked: made.asked.append(asked.url))
    made.asked = []
    yield made
    made.close()
    assert [fault for fault in faults if "net::ERR_" not in fault] == []  # a server that ended
    assert {url.split("/")[2].split(":")[0] for url in made.asked} <= {"127.0.0.1"}


def opened(page, address, folder):
    page.goto(f"{address}#{folder}")
    page.wait_for_selector("#status.live")
    page.wait_for_function(
        "name => document.getElementById('title').textContent === name", arg=folder
    )
    return page


def test_all_panels_are_drawn(page, tmp_path):
    Store(tmp_path / "few").add([folders.record(seed) for seed in range(6)])
    folders.going_on(tmp_path / "few", seed=7, probe=folders.probe_of())
    with serving(tmp_path) as process:
        opened(page, re.search(r"http://\S+/", process.stdout.readline()).group(), "few")
        look_at_all_panels(page)
        process.kill()


def look_at_all_panels(page):
    for place in ("#return", "#error", "#path-chart", "#learned"):
        page.wait_for_selector(f"{place} canvas")
    assert page.locator("#time tbody tr").count() == 7
    assert page.locator("#map .key").inner_text().startswith("right and sure")
    assert page.locator("#path-table tbody tr").count() == 2
    page.select_option("#action", "1")
    assert "not tried" in page.locator("#path-table").inner_text()


@thorough
def test_the_page_follows_a_run(page, tmp_path):
    with serving(tmp_path) as process:
        address = re.search(r"http://\S+/", process.stdout.readline()).group()
        page.goto(address)
        page.wait_for_selector("#empty:has-text('No runs in')")
        journal = folders.going_on(tmp_path / "later", steps=300)
        page.wait_for_selector("#time:has-text('300 of 2,000')")
        folders.tell(journal, 500)
        page.wait_for_selector("#time:has-text('500 of 2,000')")
        journal.__exit__(None, None, None)
        page.wait_for_selector("#time .pill.finished")
        process.kill()
        page.wait_for_selector("#status.lost")


@thorough
def test_broken_records_are_named_beside_the_others(page, address):
    opened(page, address, "broken")
    assert page.locator("#problems li").count() == 3
    page.wait_for_selector("#return canvas")
    assert "cannot be shown" in page.locator("#model-problem").inner_text()


@thorough
def test_failures_of_a_sweep_have_their_reasons(page, address):
    opened(page, address, "sweep")
    assert "1 of 4 runs done, 1 failed" in page.locator("#sweep").inner_text()
    page.locator("#sweep summary").click()
    assert "Traceback: line 7" in page.locator("#sweep pre").inner_text()


@thorough
@pytest.mark.parametrize("folder", ["long", "hundred"])
def test_many_points_and_many_runs_are_quick(page, address, folder):
    began = time.perf_counter()
    opened(page, address, folder)
    page.wait_for_selector("#return canvas")
    assert time.perf_counter() - began < 5
    drawn = page.evaluate(
        "() => document.querySelector('#return div[role=img]').chart.data[0].length"
    )
    assert 10 < drawn <= 4100
    if folder == "hundred":
        assert page.locator("#mean").is_checked()
        page.locator("#mean").uncheck()
        lines = page.evaluate(
            "() => document.querySelector('#return div[role=img]').chart.series.length"
        )
        assert lines == 101


@thorough
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("folder", ["few", "sweep"])
def test_axe_finds_no_barrier(browser, address, theme, folder):
    if not AXE.exists():
        pytest.skip("axe-core is not there: make test-browser fetches it")
    page = browser.new_page(color_scheme=theme, bypass_csp=True)
    opened(page, address, folder)
    page.wait_for_timeout(300)
    page.add_script_tag(path=AXE)
    found = page.evaluate("() => axe.run()")["violations"]
    page.close()
    assert [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in found] == []


@thorough
def test_a_phone_shows_everything_without_scrolling_sideways(browser, address):
    page = browser.new_page(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    opened(page, address, "few")
    page.wait_for_selector("#map canvas")
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    chosen = page.locator("#pick").is_visible()
    page.close()
    assert wide <= 360
    assert chosen


@thorough
def test_the_keyboard_reaches_every_control(page, address):
    opened(page, address, "few")
    page.wait_for_selector("#map canvas")
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.id"))
    wanted = {"theme", "setting", "mean", "log", "run", "dimension", "start", "action", "map-x"}
    assert wanted <= reached
    page.locator("#start").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#start-at").inner_text() != "0"
    page.locator("#theme").press("Enter")
    assert page.locator("#theme").inner_text() == "Theme: light"


@thorough
def test_fifty_pages_are_one_look_at_the_folders(tmp_path):
    """Fifty streams of events: each hears of a change, and the server hardly works."""
    journal = folders.going_on(tmp_path, steps=300)
    with serving(tmp_path) as process:
        address = re.search(r"http://\S+/", process.stdout.readline()).group()
        heard = []

        def listen():
            with urllib.request.urlopen(f"{address}events", timeout=30) as stream:
                versions = []
                while len(versions) < 3:
                    line = stream.readline()
                    if line.startswith(b"data:"):
                        versions.append(json.loads(line[5:]))
                        folder = next(iter(versions[-1]))
                        urllib.request.urlopen(f"{address}api/folder/{folder}").read()
                heard.append(versions)

        pages = [threading.Thread(target=listen) for _ in range(50)]
        for one in pages:
            one.start()
        time.sleep(2)
        before = cpu_seconds(process.pid)
        began = time.perf_counter()
        for steps in (400, 500):
            folders.tell(journal, steps)
            time.sleep(2)
        for one in pages:
            one.join(timeout=20)
        share = (cpu_seconds(process.pid) - before) / (time.perf_counter() - began)
        process.kill()
    assert len(heard) == 50
    assert share < 0.5, f"{share:.0%} of a core"


def cpu_seconds(pid):
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100

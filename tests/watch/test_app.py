"""The web application: what it answers, whom it refuses, and that it ends."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

from starlette.testclient import TestClient

from losse.cli import main
from losse.runs.store import Store
from losse.watch.app import make_app, page_files
from losse.watch.server import listening
from losse.watch.watched import Watched
from tests.watch import folders


@pytest.fixture
def client(tmp_path):
    Store(tmp_path / "runs").add([folders.record()])
    app = make_app(Watched([tmp_path / "runs"]), names=["lab-7.example"])
    with TestClient(app, base_url="http://127.0.0.1:8321") as made:
        yield made


def test_the_page_and_its_parts_are_served(client):
    for address in page_files():
        answer = client.get(address)
        assert answer.status_code == 200
        assert answer.headers["content-type"].split(";")[0].split("/")[0] in ("text", "image")
    assert "losse watch" in client.get("/").text


def test_the_page_asks_no_other_host():
    for name, body in page_files().items():
        if not name.startswith("/vendor"):
            links = re.findall(rb"https?://[^\s\"'`)]+", body)
            assert [link for link in links if link != b"http://www.w3.org/2000/svg"] == [], name


def test_the_policy_of_the_page_names_no_other_host(client):
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "*" not in policy


def test_data_of_a_folder_are_sent_once_per_version(client):
    (folder,) = client.get("/api/overview").json()["folders"]
    answer = client.get(f"/api/folder/{folder['id']}")
    assert [run["method"] for run in answer.json()["runs"]] == ["losse"]
    tag = {"If-None-Match": answer.headers["etag"]}
    assert client.get(f"/api/folder/{folder['id']}", headers=tag).status_code == 304


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "[evil]"]
)
def test_names_of_other_machines_are_refused(client, host):
    for address in ("/", "/api/overview", "/events"):
        answer = client.get(address, headers={"Host": host})
        assert answer.status_code == 421
        assert "runs" not in answer.text


@pytest.mark.parametrize(
    "host", ["localhost:8321", "127.0.0.1", "[::1]:80", "192.168.1.7:8321", "lab-7.example"]
)
def test_own_names_and_addresses_of_digits_are_welcome(client, host):
    assert client.get("/api/overview", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "address",
    [
        "/../runs.jsonl",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/vendor/../../app.py",
        "/api/folder/..%2F..%2Fetc%2Fpasswd",
        "/api/probe/%2Fetc%2Fpasswd",
        "/app.py",
        "//etc/passwd",
        "/vendor/uPlot.LICENSE/..",
    ],
)
def test_no_address_leads_to_another_file(client, address):
    assert client.get(address).status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(client, method):
    for address in ("/", "/api/overview", "/events"):
        assert client.request(method, address).status_code == 405


def test_a_port_that_is_taken_is_named():
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port={port} of 127.0.0.1 cannot be used"):
            listening("127.0.0.1", port)


def test_a_folder_that_does_not_exist_is_refused(capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(["watch", str(tmp_path / "nowhere")])
    assert stop.value.code == 2
    assert "is no folder" in capsys.readouterr().err


@pytest.fixture
def server(tmp_path):
    """A server as a user starts it: its address, its folder and its process."""
    command = [sys.executable, "-m", "losse", "watch", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        address = re.search(r"http://\S+/", process.stdout.readline()).group()
        yield address, tmp_path, process
        process.kill()


def next_event(stream):
    while not (line := stream.readline()).startswith(b"data:"):
        assert line, "the stream has ended"
    return json.loads(line[5:])


def test_events_tell_of_changes_and_ctrl_c_ends_the_server_soon(server):
    address, folder, process = server
    journal = folders.going_on(folder, steps=300)
    with urllib.request.urlopen(f"{address}events", timeout=20) as stream:
        versions = next_event(stream)
        while not versions:
            versions = next_event(stream)
        folders.tell(journal, 400)
        began = time.perf_counter()
        after = next_event(stream)
        assert time.perf_counter() - began < 5
        assert {**after} != {**versions}
        process.send_signal(signal.SIGINT)
        began = time.perf_counter()
        assert process.wait(timeout=20) == 0
        assert time.perf_counter() - began < 5

"""Headless Chromium over the DevTools protocol, by the pipe of --remote-debugging-pipe: no package is needed."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def executable() -> str | None:
    return shutil.which("chromium") or shutil.which("google-chrome")


class Browser:
    """One page. `console` holds what was written to its console, `requests` what it asked for."""

    def __init__(self) -> None:
        self.console: list[str] = []
        self.requests: list[str] = []
        self.ids = itertools.count(1)
        self.profile = tempfile.TemporaryDirectory(prefix="convmish-browser-", ignore_cleanup_errors=True)
        commands, self.to = os.pipe()
        self.answers, results = os.pipe()
        self.buffer = b""
        # Chromium reads commands from descriptor 3 and answers on 4, which pass_fds cannot name.
        redirected = ["sh", "-c", f'exec "$@" 3<&{commands} 4>&{results}', "sh"]
        chromium = [executable(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.profile.name}"]
        self.process = subprocess.Popen(
            [*redirected, *chromium, "--remote-debugging-pipe", "about:blank"],
            pass_fds=(commands, results),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(results)
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        os.close(self.to)  # Chromium ends with its pipe
        self.process.wait(timeout=30)
        os.close(self.answers)
        self.profile.cleanup()

    def receive(self) -> dict:
        while b"\0" not in self.buffer:
            chunk = os.read(self.answers, 1 << 20)
            if not chunk:
                raise ConnectionError(f"Chromium ended, exit code {self.process.wait()}")
            self.buffer += chunk
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, **parameters: object) -> dict:
        """The result of a command. Events that arrive meanwhile are kept."""
        identity = next(self.ids)
        command = {"id": identity, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.to, json.dumps(command).encode() + b"\0")
        while (message := self.receive()).get("id") != identity:
            self.note(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return message["result"]

    def note(self, event: dict) -> str:
        """Keeps what an event tells; its name."""
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.console.append(
                " ".join(str(argument.get("value", argument.get("description"))) for argument in parameters["args"])
            )
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        return method

    def evaluate(self, expression: str) -> object:
        """The value of a JavaScript expression, or of the promise that it gives."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def open(self, page: Path, width: int = 1280, scheme: str = "light") -> None:
        """Opens a report page and waits until it has drawn its figures."""
        self.console.clear()
        self.requests.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=page.resolve().as_uri())
        while self.note(self.receive()) != "Page.loadEventFired":
            pass
        self.evaluate("window.drawn")  # a promise, settled when all figures are drawn

    def wait_for(self, condition: str) -> None:
        """Until a JavaScript expression holds: a figure is drawn again some time after its signal changed."""
        self.evaluate(
            "new Promise((done, late) => { setTimeout(() => late('not within 30 s'), 30000);"
            f" (function look() {{ {condition} ? done() : setTimeout(look, 20) }})() }})"
        )

    def choose(self, selector: str, value: str) -> None:
        """An option of the first <select> that matches."""
        self.evaluate(
            f"(() => {{ const select = document.querySelector({selector!r}); select.value = {value!r};"
            " select.dispatchEvent(new Event('change')); })()"
        )

    def hover(self, selector: str) -> None:
        """Moves the mouse to the middle of the first element that matches."""
        place = self.evaluate(
            f"(() => {{ const element = document.querySelector({selector!r}); element.scrollIntoView();"
            " const {x, y, width, height} = element.getBoundingClientRect();"
            " return {x: x + width / 2, y: y + height / 2}; })()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)

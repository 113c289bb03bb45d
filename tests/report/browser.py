"""A page in headless Chromium, by the DevTools protocol over a pipe: messages of JSON that end in a zero."""
import base64
import json
import os
import subprocess
import tempfile
import time


class Browser:
    def __init__(self, program, timeout=60):
        self.timeout = timeout
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.answers, from_write = os.pipe()

        def files():  # the protocol's: 3 to read, 4 to write; via others, as either may be 3 or 4 already
            high = [os.dup2(to_read, 100), os.dup2(from_write, 101)]
            for target, source in zip((3, 4), high):
                os.dup2(source, target)
                os.close(source)

        self.process = subprocess.Popen(
            [program, '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
             '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-proxy-server',
             '--allow-pre-commit-input',
             '--host-resolver-rules=MAP * ~NOTFOUND', '--remote-debugging-pipe',
             '--user-data-dir=' + self.folder.name, 'about:blank'],
            pass_fds=(3, 4, to_read, from_write), preexec_fn=files, env={**os.environ, 'HOME': self.folder.name},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.number, self.session = b'', 0, None
        self.wrong, self.requests, self.loaded = [], [], 0
        target = self.ask('Target.createTarget', url='about:blank')['targetId']
        self.session = self.ask('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in 'Runtime', 'Page', 'Log', 'Network':
            self.ask(domain + '.enable')

    def message(self):
        end = time.monotonic() + self.timeout
        os.set_blocking(self.answers, False)
        while b'\0' not in self.buffer:
            try:
                read = os.read(self.answers, 1 << 20)
                if not read:
                    raise RuntimeError('the browser has ended')
                self.buffer += read
            except BlockingIOError:
                if time.monotonic() > end:
                    raise RuntimeError('the browser does not answer') from None
                time.sleep(0.005)
        text, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(text)

    def note(self, event):
        method, params = event.get('method'), event.get('params', {})
        if method == 'Runtime.exceptionThrown':
            self.wrong.append(json.dumps(params['exceptionDetails'])[:600])
        elif method == 'Runtime.consoleAPICalled' and params['type'] in ('error', 'assert', 'warning'):
            self.wrong.append(json.dumps(params['args'])[:600])
        elif method == 'Log.entryAdded' and params['entry']['level'] == 'error':
            self.wrong.append(params['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            self.requests.append(params['request']['url'])
        elif method == 'Page.javascriptDialogOpening':
            self.wrong.append('a dialog: ' + params['message'])
            self.send('Page.handleJavaScriptDialog', accept=True)
        elif method == 'Page.loadEventFired':
            self.loaded += 1

    def send(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.set_blocking(self.to, True)
        text = json.dumps(message).encode() + b'\0'
        while text:
            text = text[os.write(self.to, text):]
        return self.number

    def ask(self, method, **params):
        number = self.send(method, **params)
        while True:
            message = self.message()
            if message.get('id') == number:
                if 'error' in message:
                    raise RuntimeError(f'{method}: {message["error"]}')
                return message['result']
            self.note(message)

    def open(self, path, width=1400, height=900, dark=False):
        self.ask('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])
        self.ask('Emulation.setScrollbarsHidden', hidden=True)
        before = self.loaded
        self.ask('Page.navigate', url='file://' + os.path.abspath(path))
        while self.loaded == before:
            self.note(self.message())
        self.settle()

    def settle(self):
        """Waits until what the page does in its next frame has been done, too."""
        self.run('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))')

    def run(self, script):
        result = self.ask('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            self.wrong.append(script + ': ' + json.dumps(result['exceptionDetails'])[:600])
        return result['result'].get('value')

    def mouse(self, kind, x, y, **more):
        self.ask('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse('mouseMoved', x, y)
        for kind in 'mousePressed', 'mouseReleased':
            self.mouse(kind, x, y, button='left', clickCount=1)

    def key(self, key, shift=False):
        """Presses a key, such as Enter or ArrowLeft."""
        text = {'Enter': '\r'}.get(key, key if len(key) == 1 else '')
        codes = {'Enter': 13, 'Escape': 27, 'Tab': 9, 'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowDown': 40}
        more = {'key': key, 'modifiers': 8 if shift else 0, 'windowsVirtualKeyCode': codes.get(key, 0)}
        self.ask('Input.dispatchKeyEvent', type='keyDown', text=text, **more)
        self.ask('Input.dispatchKeyEvent', type='keyUp', **more)

    def picture(self, path, whole=True):
        size = self.ask('Page.getLayoutMetrics')['cssContentSize']
        clip = {'x': 0, 'y': 0, 'width': size['width'], 'height': min(size['height'], 6000), 'scale': 1}
        more = {'captureBeyondViewport': True, 'clip': clip} if whole else {}
        data = self.ask('Page.captureScreenshot', format='png', **more)['data']
        with open(path, 'wb') as out:
            out.write(base64.b64decode(data))

    def close(self):
        self.session = None
        try:
            self.send('Browser.close')
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

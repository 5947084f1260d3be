// Pages that were opened from a disk can't start a worker, which the search needs. There, a hidden
// frame takes its place: the script of the worker runs in it, and messages go both ways.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #waiting = [];

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => this.#tell(this, data);
      inside.importScripts = (...urls) => Promise.all(urls.map((one) => this.#load(one)));
      this.#load(url).then(() => {
        const waiting = this.#waiting;
        this.#waiting = undefined;
        waiting.forEach((data) => this.postMessage(data));
      });
    }

    postMessage(data) {
      if (this.#waiting) this.#waiting.push(data);
      else this.#tell(this.#frame.contentWindow, data);
    }

    terminate() {
      this.#frame.remove();
    }

    #tell(target, data) {
      const message = new MessageEvent("message", { data });
      setTimeout(() => {
        target.dispatchEvent(message);
        target.onmessage?.call(target, message);
      });
    }

    #load(url) {
      return new Promise((loaded, failed) => {
        const script = this.#frame.contentDocument.createElement("script");
        script.src = new URL(url, document.baseURI);
        script.onload = loaded;
        script.onerror = failed;
        this.#frame.contentDocument.body.append(script);
      });
    }
  };
}

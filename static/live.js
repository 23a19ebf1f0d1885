// Refreshes the numbers of the strip and the navigation, offers what is new, and
// copies texts. It never moves a row, decides nothing, and no page needs it.
"use strict";
(() => {
  const every = 15000;
  const drawn = {};
  const each = (selector, f) => document.querySelectorAll(selector).forEach(f);
  each("[data-live]", (e) => { drawn[e.dataset.live] = e.textContent; });

  function show({ state, text }) {
    each("[data-live]", (e) => {
      const t = text[e.dataset.live];
      if (typeof t === "string" && t !== e.textContent) e.textContent = t;
    });
    each(".strip", (e) => { e.dataset.state = state; });
    each("[data-newer]", (e) => {
      let n = 0;
      for (const key of e.dataset.newer.split(" ")) {
        n += Math.max(0, (parseInt(text[key], 10) || 0) - (parseInt(drawn[key], 10) || 0));
      }
      e.hidden = n === 0;
      e.textContent = n === 0 ? "" : n + " new · show";
    });
  }

  async function look() {
    if (document.hidden) return;
    let fresh = false;
    try {
      const r = await fetch("/counts", { headers: { Accept: "application/json" }, cache: "no-store", redirect: "error" });
      if (r.ok) {
        show(await r.json());
        fresh = true;
      }
    } catch {
      // The numbers stay, and the page says that they may be old.
    }
    each(".strip-stale", (e) => { e.hidden = fresh; });
  }

  async function copy(button) {
    const name = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      // Without https there is no clipboard: mark the text for the person's own copy.
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = name; }, 2000);
  }

  each("[data-copy]", (b) => {
    b.hidden = false;
    b.addEventListener("click", () => copy(b));
  });
  if (document.querySelector(".strip")) {
    setInterval(look, every);
    document.addEventListener("visibilitychange", look);
  }
})();

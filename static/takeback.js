// Counts down how long an approval can be taken back. When the time is over, the
// button goes and the page is asked for anew: only the server knows what became
// of it. Without script the seconds stand still, and the server refuses in time.
"use strict";
(() => {
  const form = document.querySelector("form[data-leaves]");
  const number = form?.querySelector("[data-seconds]");
  if (!number) return;
  const leaves = performance.now() + Number(form.dataset.leaves);

  const count = setInterval(() => {
    const left = Math.ceil((leaves - performance.now()) / 1000);
    if (left > 0) {
      number.textContent = "(" + left + ")";
      return;
    }
    clearInterval(count);
    form.hidden = true;
    setTimeout(() => location.reload(), 1000);
  }, 250);

  // A page from the browser's memory shows seconds that are long over.
  addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
})();

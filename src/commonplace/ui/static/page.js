// Keys, and a few comforts. Every page does all it can without this file.
"use strict";
(() => {
  document.documentElement.classList.add("scripts");
  const typing = (node) => node.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  const base = document.body.dataset.base || "/ui";

  // A list that is walked with j and k.
  const rows = () => [...document.querySelectorAll("[data-rows] > .row")];
  const current = () => rows().findIndex((row) => row.contains(document.activeElement));
  const walk = (step) => {
    const all = rows();
    if (!all.length) return;
    const at = current();
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
    const link = all[next].querySelector("a");
    link.focus();
    all[next].scrollIntoView({ block: "nearest" });
  };
  const tick = () => {
    const box = rows()[current()]?.querySelector("input[type=checkbox]");
    if (box) box.checked = !box.checked;
  };

  const dialog = document.getElementById("keys");
  let go = 0; // when "g" was pressed
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && typing(event.target)) event.target.blur();
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      const submit = event.target.closest("form")?.querySelector("[data-submit]");
      if (submit) { event.preventDefault(); submit.click(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || dialog?.open) return;
    if (go && event.timeStamp - go < 1500) {
      go = 0;
      const tab = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (tab) { event.preventDefault(); tab.click(); }
      return;
    }
    switch (event.key) {
      case "g": go = event.timeStamp; return;
      case "?": event.preventDefault(); dialog?.showModal(); return;
      case "j": walk(1); return;
      case "k": walk(-1); return;
      case "x": tick(); return;
      case "/": {
        const box = document.querySelector("[data-search]");
        if (box) { event.preventDefault(); box.focus(); box.select(); } else location.href = `${base}/memories`;
        return;
      }
    }
    const button = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (button) { event.preventDefault(); button.click(); }
  });
  // On a phone the bar is wider than the screen.
  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

  document.querySelector("[data-keys-help]")?.addEventListener("click", () => dialog?.showModal());

  // Nothing is decided twice by an impatient finger.
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) { event.preventDefault(); return; }
    if (event.target.method === "post") event.target.dataset.sent = "1";
  });
  window.addEventListener("pageshow", () => {
    document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent);
  });

  document.querySelector("[data-tick-all]")?.addEventListener("change", (event) => {
    rows().forEach((row) => {
      const box = row.querySelector("input[type=checkbox]");
      if (box) box.checked = event.target.checked;
    });
  });

  // A file is read into the field that it could have been pasted into.
  document.querySelectorAll("[data-read-into]").forEach((choice) => {
    choice.addEventListener("change", async () => {
      const into = document.getElementById(choice.dataset.readInto);
      if (into && choice.files[0]) into.value = await choice.files[0].text();
    });
  });

  // A filter is applied as soon as it is chosen.
  document.querySelectorAll("form.filters select").forEach((choice) => {
    choice.addEventListener("change", () => choice.form.requestSubmit());
  });
})();

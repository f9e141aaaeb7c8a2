// What a page does beyond being read: times in the reader's zone, copying, refreshing. Every page works without.
"use strict";

(() => {
  const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });

  function localise(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.title = time.dateTime;
      time.textContent = full.format(at);
    }
    age(root);
  }

  function age(root) {
    for (const said of root.querySelectorAll("[data-age]")) {
      const at = new Date(said.dataset.age);
      if (Number.isNaN(at.getTime())) continue;
      const seconds = Math.max(0, (Date.now() - at.getTime()) / 1000);
      const [unit, size] = units.find(([, each]) => seconds >= each) || units[units.length - 1];
      said.textContent = seconds < 5 ? "just now" : relative.format(-Math.floor(seconds / size), unit);
      said.title = full.format(at);
    }
  }

  async function copied(button) {
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = said; }, 1500);
  }

  function live(region) {
    const toggle = document.querySelector("[data-live-switch]");
    const status = document.querySelector("[data-live-said]");
    let was = region.innerHTML;
    let busy = false;
    async function refresh() {
      if (busy || document.hidden || !toggle.checked || region.contains(document.activeElement)) return;
      if (region.querySelector("input:checked")) return;
      busy = true;
      try {
        const answer = await fetch(region.dataset.live, { credentials: "same-origin", redirect: "error" });
        if (!answer.ok) throw new Error(String(answer.status));
        const html = await answer.text();
        if (html.trim() !== was.trim()) {
          region.innerHTML = html;
          localise(region);
          was = html;
        }
        status.textContent = "";
      } catch {
        status.textContent = "The server does not answer; trying again.";
      } finally {
        busy = false;
      }
    }
    setInterval(refresh, 5000);
  }

  async function load(region) {
    const said = document.createElement("p");
    said.className = "muted working";
    said.textContent = "Working…";
    const before = region.innerHTML;
    region.replaceChildren(said);
    try {
      const answer = await fetch(region.dataset.load, { credentials: "same-origin", redirect: "error" });
      if (!answer.ok) throw new Error(String(answer.status));
      region.innerHTML = await answer.text();
      localise(region);
    } catch {
      region.innerHTML = before;
    }
  }

  function comparing(form) {
    const button = form.querySelector("[data-compare-button]");
    const settle = () => {
      const ticked = form.querySelectorAll("input[name=plan]:checked").length;
      button.disabled = ticked !== 2;
      for (const box of form.querySelectorAll("input[name=plan]")) box.disabled = ticked >= 2 && !box.checked;
    };
    form.addEventListener("change", settle);
    settle();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (button) copied(button);
  });

  document.addEventListener("submit", (event) => {
    const button = event.target.querySelector("button[data-busy]");
    if (!button) return;
    button.textContent = button.dataset.busy;
    button.disabled = true;
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
    const field = document.querySelector("[data-search], #ask-what");
    if (field) { event.preventDefault(); field.focus(); }
  });

  for (const here of document.querySelectorAll(".tabs [aria-current], .main-nav [aria-current]")) {
    const row = here.parentElement;
    if (here.offsetLeft - row.offsetLeft + here.offsetWidth <= row.clientWidth) continue;
    row.scrollLeft = here.offsetLeft - row.offsetLeft - row.clientWidth / 2 + here.clientWidth / 2;
  }
  localise(document);
  setInterval(() => age(document), 15000);
  for (const region of document.querySelectorAll("[data-live]")) live(region);
  for (const region of document.querySelectorAll("[data-load]")) load(region);
  for (const form of document.querySelectorAll("[data-compare]")) comparing(form);
})();

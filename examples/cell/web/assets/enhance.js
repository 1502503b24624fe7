/** Improves pages for browsers with JavaScript. All pages also work without it. */

const PANEL_MS = 1_000;
const WAIT_MS = 500;

const pause = (ms) => new Promise((resume) => setTimeout(resume, ms));

/** Keeps the panel up to date while the page is visible. */
async function followPanel() {
  for (;;) {
    const panel = document.querySelector("[data-live]");
    if (panel === null) return;
    await pause(PANEL_MS);
    if (document.hidden) continue;
    try {
      const answer = await fetch(panel.dataset.live);
      if (!answer.ok) continue;
      const next = new DOMParser()
        .parseFromString(await answer.text(), "text/html")
        .querySelector("[data-live]");
      if (next !== null && next.innerHTML !== panel.innerHTML) panel.replaceWith(next);
    } catch {
      // The cell is down and will restart.
    }
  }
}

/** Opens the cell's page as soon as the cell is back. */
async function waitForCell() {
  const waiting = document.querySelector("[data-wait]");
  if (waiting === null) return;
  for (;;) {
    await pause(WAIT_MS);
    try {
      const answer = await fetch(waiting.dataset.wait);
      const { isUp } = await answer.json();
      if (isUp) break;
    } catch {
      // The example itself may have been stopped.
    }
  }
  location.replace(waiting.dataset.then);
}

await Promise.all([followPanel(), waitForCell()]);

// Waits for the first snapshot: shows what the server says of the build, and loads the page once it is there.

const EVERY_MS = 2_000;

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.status !== 503) return location.reload();
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const words = next.getElementById("detail")?.textContent;
    const detail = document.getElementById("detail");
    if (words && words !== detail.textContent) detail.textContent = words;
  } catch {
    // The server is away: it may come back.
  }
}

document.addEventListener("visibilitychange", look);
setInterval(look, EVERY_MS);

// Before the page is drawn: the colours that the reader chose, if the browser remembers them.
try {
  const chosen = localStorage.getItem("weigh-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A page opened from disk may have no storage: the system's colours then.
}

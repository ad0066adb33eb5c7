// Elements of the page that the script makes.

function element(name, kind = "", text = "") {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text) made.textContent = text;
  return made;
}

function button(text, act) {
  const made = element("button", "", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

/** Announces something to screen readers. */
const live = element("p", "unseen");
live.setAttribute("role", "status");

/** Puts text into the clipboard. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Not every page opened from disk may write to the clipboard; copying a selection works.
    const copied = element("pre", "unseen", text);
    document.body.append(copied);
    getSelection().selectAllChildren(copied);
    document.execCommand("copy");
    copied.remove();
  }
}

/** A button that copies, and says that it did. */
function copyButton(text, what) {
  const made = button(text, async () => {
    await copyText(what());
    made.textContent = "Copied";
    live.textContent = "Copied";
    setTimeout(() => (made.textContent = text), 2000);
  });
  return made;
}

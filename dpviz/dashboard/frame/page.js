// draws the page again when the reader's theme changes, for Streamlit recolours its own parts only and not the figures;
// when the window becomes narrower or wider than 640 pixels, for figures put names where there is room; and when a cut
// connection is back, for the server may not have heard of the last move of a control, or its answer was lost
(() => {
  const paper = () => getComputedStyle(document.querySelector(".stApp")).backgroundColor;
  let last = paper();
  clearInterval(window.dpvizTheme);
  window.dpvizTheme = setInterval(() => {
    const now = paper(), button = document.querySelector(".st-key-draw-again button");
    if (now !== last && button) { last = now; button.click(); }
    const links = [...document.querySelectorAll(".st-key-pages a")];  // one tab stop; arrow keys move between them
    const here = links.find((a) => new URL(a.href).pathname === location.pathname) ?? links[0];
    links.forEach((a) => { a.tabIndex = a === here ? 0 : -1; });
    document.querySelector(".stMain")?.setAttribute("tabindex", "-1");
    for (const table of document.querySelectorAll(".stTable table"))  // what scrolls sideways can be scrolled by keys
      if (table.offsetWidth > table.parentElement.clientWidth) table.parentElement.tabIndex = 0;
      else table.parentElement.removeAttribute("tabindex");
    const other = innerWidth < 640 ? "narrow" : "wide";  // only the button that would change something is there
    document.querySelector(`.st-key-window-${other} button`)?.click();
  }, 500);
  document.onkeydown = (event) => {
    const links = [...document.querySelectorAll(".st-key-pages a")], at = links.indexOf(document.activeElement);
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (at < 0 || !step) return;
    event.preventDefault();
    links[(at + step + links.length) % links.length].focus();
  };
  const app = document.querySelector("[data-testid=stApp]");
  const again = () => {
    const button = document.querySelector(".st-key-draw-again button");
    if (button) return button.click();
    // the page is empty where its parts were lost on the way and only its end came; Streamlit's own key runs it again
    if (app.dataset.testScriptState === "notRunning")
      document.dispatchEvent(new KeyboardEvent("keydown", {key: "r", code: "KeyR", keyCode: 82, bubbles: true}));
    window.dpvizAgain = setTimeout(again, 200);
  };
  window.dpvizLine?.disconnect();
  window.dpvizLine = new MutationObserver(() => {
    const cut = app.dataset.testConnectionState.toLowerCase() !== "connected";
    clearTimeout(window.dpvizAgain);
    if (window.dpvizCut && !cut) window.dpvizAgain = setTimeout(again, 100);
    window.dpvizCut = cut;
  });
  window.dpvizLine.observe(app, {attributes: true, attributeFilter: ["data-test-connection-state"]});
})();

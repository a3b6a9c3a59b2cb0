// What unfolds: each by itself, or all of a list together.

for (const list of all(".folds")) {
  const folds = all(":scope > details", list);
  const button = make("button", { type: "button", className: "unfold" });
  const say = () => { button.textContent = folds.every((fold) => fold.open) ? "Fold all" : "Unfold all"; };
  button.onclick = () => {
    const open = !folds.every((fold) => fold.open);
    folds.forEach((fold) => { fold.open = open; });
  };
  folds.forEach((fold) => fold.addEventListener("toggle", say));
  say();
  list.prepend(make("div", { className: "tools" }, button));
}

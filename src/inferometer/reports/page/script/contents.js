// Contents: open next to the text, folded on a phone; the section in view is marked.

const contents = document.querySelector("nav details");
if (contents) {
  const wide = matchMedia("(min-width: 68rem)");
  const unfold = () => { contents.open = wide.matches; };
  wide.addEventListener("change", unfold);
  unfold();
  const links = new Map(all("a", contents).map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  all("section[id]").forEach((section) => seen.observe(section));
}

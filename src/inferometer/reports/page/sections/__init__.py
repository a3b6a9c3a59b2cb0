"""One file per section of the page; each declares a `SECTION`."""

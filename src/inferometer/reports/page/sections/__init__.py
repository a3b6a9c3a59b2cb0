"""One file a section of the page; each declares a `SECTION`."""

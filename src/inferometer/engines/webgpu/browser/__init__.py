"""The program in a real browser: a page that Python serves on loopback runs it, and sends back what happened.

`session` is the runner; `bundle` is what the page is given, `messages` what it answers, `server` how both travel,
`chromium` who opens the page. The page's own files are in `page/`: nothing of them comes from a network.
"""

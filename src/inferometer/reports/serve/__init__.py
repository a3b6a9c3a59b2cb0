"""A local app over one's runs: their list, the report of each and of any two, a time line at full detail, SQL.

The server (`app.py`) opens no file of a user: it lists names (`runs.py`), keeps what comes in (`uploads.py`), and hands
out files that it made. `routes.py` has its addresses and `endpoints.py` what each does; `requests.py` reads what a
client sent, `answers.py` makes responses, `files.py` has the app's own files. `security.py` has the rules of
`loopback.py` kept in front of all.

Whatever reads a recording is work for another process, which a hostile file may end: a job (`jobs.py`, with progress
and cancel; what it runs is in `work/`), or one that stays to answer quickly (`readers.py`: windows of the time line,
recordings that still run). What jobs make lies in the user's folder of caches under the content that it was made of
(`kept.py`): a server that is killed loses nothing and starts warm.
"""

"""Many traces at once: what each of them gives, kept in one folder, and questions about all of them.

`inferometer mine PATHS… -o FLEET.ifm`:

1. `sources` finds the traces that the arguments name; `remote` fetches those behind a URL.
2. `mining` gives each content once to a process of `workers`, which runs `digest`: the results of analyses that a
   single trace has, too, as small tables (`tables` declares them). `store` keeps each at once, so that nothing is lost
   when the process is killed; what can't be read is kept with its reason.
3. At the end `joining` makes them tables of all traces, in the order of their content: only new ones are unpacked.

`inferometer fleet FLEET …` opens these tables (`opening`) and asks them lazily: `questions` has a file for each
question. `files` has the layout of the folder.
"""

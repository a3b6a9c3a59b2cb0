"""One file a rendering: a result to text. Only here do numbers become pretty."""

"""Options that take names of backends: their help lists those that are there, other packages' too."""

from typing import ClassVar

import click


class _Backends(click.Option):
    field: ClassVar[str]  # of `Backend`: set on those that are listed

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option and its help, with the names in the place of `{backends}`: torch, then the others by name."""
        from inferometer.backends import backends

        record = super().get_help_record(ctx)
        if record is None:
            return None
        known = {each.name for each in backends().values() if getattr(each, self.field)}
        names = sorted(known, key=lambda name: (name != "torch", name))
        return record[0], record[1].replace("{backends}", ", ".join(names))


class CatalogueBackends(_Backends):
    """`{backends}` in its help stands for the backends with kernels for the catalogue's operators."""

    field = "operators"


class DecoderBackends(_Backends):
    """`{backends}` in its help stands for the backends with kernels for a decoder's operators."""

    field = "decoder"

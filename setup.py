"""Builds the compiled modules where there is a compiler; without one, their pure twins do the work.

A build says which modules it left out. A wheel without any of them is for every machine, and is tagged so
(`py3-none-any`): it must not be taken for one that is compiled.

The C compiler is nearly all of the time, so the modules are built side by side.
"""

import os
import sys
from threading import Lock

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

COMPILED = (
    "ottla.records._fast",
    "ottla.wire._native",
    "ottla.broker.partitions._partition_end",
    "ottla.broker.data._plain_produce",
    "ottla.broker.data._plain_fetch",
    "ottla.broker.coordination._gathering",
    "ottla.machines.group._commit_records",
    "ottla.client.producer._fast_append",
    "ottla.spark.sink._fast_digest",
    "ottla.schemas.avro._fast",
)

# Nobody pickles what is compiled, but for records; the code for it would be a third of a small module.
DIRECTIVES = {"auto_pickle": False}
# Not Python's own flags, unless somebody asks for others: debug information and -O3 are half of the compiler's time.
FLAGS = [] if os.environ.get("CFLAGS") else ["-O2", "-g0"]


class BuildSome(build_ext):
    """What cannot be built is left out, and named."""

    translating = Lock()

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extension(self, module: Extension) -> None:
        with self.translating:  # Cython has state of its own for the whole process
            module.sources = cythonize(module, compiler_directives=DIRECTIVES, force=self.force)[0].sources
        super().build_extension(module)

    def run(self) -> None:
        try:
            super().run()
        except Exception as problem:  # without a compiler, some of them do not come as far as a single module
            print(f"ottla: {problem}", file=sys.stderr)
        missing = [module.name for module in self.extensions if not self.is_built(module.name)]
        if missing:
            print(
                f"ottla: built WITHOUT the compiled modules {', '.join(missing)}: there is no working C compiler, or "
                "it has failed (see above). Python twins do the same, several times slower. With a compiler "
                "(gcc or clang, and Python's headers), `pip install --no-cache-dir --no-binary ottla` builds them.",
                file=sys.stderr,
            )

    def is_built(self, module: str) -> bool:
        return os.path.exists(self.get_ext_fullpath(module))


class TaggedByContent(bdist_wheel):
    def run(self) -> None:
        self.run_command("build")
        built = self.get_finalized_command("build_ext")
        if not any(built.is_built(module) for module in COMPILED):
            self.root_is_pure = True
            self.distribution.ext_modules = []  # else it would be installed as a package for one platform
        super().run()


setup(
    ext_modules=[
        Extension(module, [f"src/{module.replace('.', '/')}.pyx"], extra_compile_args=FLAGS, optional=True)
        for module in COMPILED
    ],
    cmdclass={"build_ext": BuildSome, "bdist_wheel": TaggedByContent},
)

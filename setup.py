"""Builds the compiled modules where there is a compiler; without one, their pure twins do the work."""

from setuptools import Extension, setup

COMPILED = ("ottla.records._fast", "ottla.wire._native", "ottla.client.producer._fast_append")

setup(ext_modules=[Extension(module, [f"src/{module.replace('.', '/')}.pyx"], optional=True) for module in COMPILED])

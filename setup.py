"""Builds the compiled kernel where there is a compiler; without one, the package installs and runs on its pure twin."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("ottla.records._fast", ["src/ottla/records/_fast.pyx"], optional=True)])

"""Compaction as the broker sees it; the work itself is `ottla.log.cleaning`.

    cleaner              which logs are due
    cleaner_task         the cleaning of one log

The process that does it is `ottla.runtime.cleaner_process`. Import from the modules.
"""

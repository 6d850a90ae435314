"""Compaction as the broker sees it; the work itself is `ottla.log.cleaning`.

    cleaner              which logs are due
    cleaner_task         the cleaning of one log
    cleaner_process      the loop's end of the process that cleans; cleaner_worker is the other end

Import from the modules.
"""

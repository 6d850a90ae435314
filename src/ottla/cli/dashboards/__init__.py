"""`ottla dashboards DIR`: dashboards for Grafana and rules for Prometheus, as files that both take as they are.

    dashboards_command    the command: which files there are
    grafana               dashboards, from tables of panels
    alerts                what wakes somebody up, from one table

Import from the modules.
"""

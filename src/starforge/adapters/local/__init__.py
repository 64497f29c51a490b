"""The `local` fleet: every job gets a real, short-lived Ray of its own on this machine.

fleet.py is the port; supervisor.py the process that owns one run; head.py its Ray node.
"""

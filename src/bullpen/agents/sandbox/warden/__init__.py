"""The program inside a sandbox: it runs commands and touches files, where nothing of the host is.

It is sent into the sandbox as text and run by whatever Python is there (3.10 or later), so it imports
the standard library only. In a process namespace of its own it is process 1: what runs beside it
cannot kill or stop it, and one signal to everyone ends a command with all that it forked. It is as
unprivileged as the commands that it runs, so whoever takes it over has won nothing.
"""

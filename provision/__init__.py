"""The runner: shows, records and resumes the phases that `site.yml` lists, on any site.

`python -m provision --help` lists the verbs; each is one module under `provision/commands/`. What a phase does is
decided by its roles alone; nothing here changes a host.
"""

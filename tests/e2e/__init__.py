"""The suite on real hosts: five of a lab, reached over ssh, through the runner and through Ansible alone."""

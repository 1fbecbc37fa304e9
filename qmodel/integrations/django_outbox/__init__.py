"""An outbox for Django: an application with the table of the jobs that a transaction has written, which are put once it
has committed (`qmodel.integrations.outbox`). `django_outbox.jobs` has what a program calls.

    INSTALLED_APPS = [..., "qmodel.integrations.django_outbox"]
"""

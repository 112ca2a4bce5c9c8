"""Many processes on one machine or many, started by Ray (extra ``[ray]``); nothing else imports this."""

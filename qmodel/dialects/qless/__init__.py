"""The qless dialect: execute the calls of qless's bindings on the model. Its mirror is `lua/dialects/qless_*.lua`.

>>> from qmodel.dialects import qless
>>> from qmodel.model.state.store import Store
>>> store = Store()
>>> qless.call(store, ["put", "7.5", "me", "work", "a", "Klass", "{}", "0"])
Answer(reply='a', published=[('log', '{"jid":"a","event":"put","queue":"work"}')])
>>> qless.call(store, ["length", "8", "work"]).reply
1
"""

from __future__ import annotations

from qmodel.dialects.qless.commands import call
from qmodel.dialects.qless.documents import DOCUMENTS, call_document
from qmodel.dialects.qless.recognize import recognise, recognise_document
from qmodel.dialects.qless.session import Answer, QlessError

__all__ = ["DOCUMENTS", "Answer", "QlessError", "call", "call_document", "recognise", "recognise_document"]

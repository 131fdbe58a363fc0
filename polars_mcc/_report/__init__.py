"""`report`: count a log once, ask the verbs, sum up in sentences, write HTML, Markdown or JSON."""

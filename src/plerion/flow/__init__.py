"""flow: from demands to tables, their differences, the model network and its proof. After routing, before update."""

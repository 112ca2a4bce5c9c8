"""The paper's record: its tables and figures, dynamics, the limit, voting, and checks of the graders."""

"""The timeline screen: lanes over a time axis. All but the widget's keys works without Textual."""

import logging
from threading import Event, Thread

from mmengine.logging import MMLogger

from mmlinattn.utils.log import quiet


def test_threads_that_overlap():
    """The level of the logger belongs to all of them."""
    logger = MMLogger.get_current_instance()
    level = logger.level
    entered, leave = Event(), Event()

    def other():
        with quiet():
            entered.set()
            leave.wait(10)

    thread = Thread(target=other)
    with quiet():
        assert logger.level == logging.ERROR
        thread.start()
        entered.wait(0.1)  # it would have entered by now
    leave.set()
    thread.join()
    assert entered.is_set() and logger.level == level

"""The tables of the pipeline: events as they came, and figures of them."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qmodel.pipeline.spark import register

spark = SparkSession.active()
register(spark)


@dp.table
def events() -> DataFrame:
    """Every event of the server at QMODEL_URL, once."""
    return spark.readStream.format("qmodel").load()


@dp.materialized_view
def waits() -> DataFrame:
    """How many jobs of each queue were started in each hour, and how long they had waited."""
    started = spark.read.table("events").where("event = 'popped'")
    hour = F.date_trunc("hour", "happened_at").alias("hour")
    return started.groupBy("queue", hour).agg(
        F.count("*").alias("jobs"), F.percentile_approx("wait_ms", 0.95).alias("wait_p95_ms")
    )
